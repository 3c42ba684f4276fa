if __name__ != "tailrace.net":
    raise ImportError("this package is `tailrace.net`: import it by that name")
