if __name__ != "tailrace.jobs":
    raise ImportError("this package is `tailrace.jobs`: import it by that name")
