if __name__ != "tailrace.db":
    raise ImportError("this package is `tailrace.db`: import it by that name")
