if __name__ != "tailrace.config":
    raise ImportError("this package is `tailrace.config`: import it by that name")
