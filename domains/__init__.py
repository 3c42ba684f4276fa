if __name__ != "tailrace.domains":
    raise ImportError("this package is `tailrace.domains`: import it by that name")
