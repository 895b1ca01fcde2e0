package discovery

// Refused marks err as caused by an answer that the source refused. Metrics then count the failure
// as refused instead of failed. The error's text does not change. Refused(nil) is nil.
func Refused(err error) error {
	if err == nil {
		return nil
	}
	return refused{err}
}

// Mistake marks err as an error that retrying cannot fix, because the user must change something.
// An example is a service that the server does not have. The failure is handled like any other, but
// its text says that it is a mistake. Mistake(nil) is nil.
func Mistake(err error) error {
	if err == nil {
		return nil
	}
	return mistake{err}
}

type refused struct{ error }

// Refused is the method by which internal/channel/join recognizes the error.
func (refused) Refused() bool { return true }

func (e refused) Unwrap() error { return e.error }

type mistake struct{ error }

// Mistake is the method by which internal/channel/join recognizes the error.
func (mistake) Mistake() bool { return true }

func (e mistake) Unwrap() error { return e.error }
