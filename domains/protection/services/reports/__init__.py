"""Reports: the alerts, exposures and changes of an account in some days, as a PDF."""
