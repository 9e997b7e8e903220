
# Skerry: new random numbers when this sandbox goes on from a memory that others go on from as well.
def _skerry():
    import _signal

    def reseed(_number, _frame):
        import os
        import sys

        loaded = sys.modules
        try:
            if "random" in loaded:
                loaded["random"].seed()
        except Exception:
            pass
        try:
            # Whoever has loaded OpenSSL has one state in common; each thread takes a new seed of it when it next draws.
            if "_ssl" in loaded or "_hashlib" in loaded or "_ctypes" in loaded:
                import _ssl

                _ssl.RAND_add(os.urandom(64), 64.0)
        except Exception:
            pass

    if _signal.getsignal(_signal.SIGURG) == _signal.SIG_DFL:
        _signal.signal(_signal.SIGURG, reseed)


try:
    _skerry()
except Exception:
    pass
del _skerry
