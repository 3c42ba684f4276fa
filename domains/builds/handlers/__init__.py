"""The handlers of build-service events, one module each."""
