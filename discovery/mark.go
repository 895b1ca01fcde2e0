package discovery

// Mistake marks err as an error that retrying cannot fix, because the user must change something.
// An example is a service that the server does not have. The failure is handled like any other, but
// its text says that it is a mistake. Mistake(nil) is nil.
func Mistake(err error) error {
	if err == nil {
		return nil
	}
	return mistake{err}
}

type mistake struct{ error }

// Mistake is the method by which internal/channel/join recognizes the error.
func (mistake) Mistake() bool { return true }

func (e mistake) Unwrap() error { return e.error }
