"""Run claimed jobs: call the handler and give a verdict on each job."""
