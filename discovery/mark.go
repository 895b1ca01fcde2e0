package discovery

// Refused marks the error of a failure for which there was an answer, and the source refused it.
// Metrics count it as refused, and not as failed. The text stays the same. Refused(nil) is nil.
func Refused(err error) error {
	if err == nil {
		return nil
	}
	return refused{err}
}

// Mistake marks the error of a failure that waiting will not help, such as a service that a
// server does not know: the user has to change something. It is handled as others are, and
// shown as a mistake. Mistake(nil) is nil.
func Mistake(err error) error {
	if err == nil {
		return nil
	}
	return mistake{err}
}

type refused struct{ error }

// Refused says so to internal/join.
func (refused) Refused() bool { return true }

// Unwrap returns the error.
func (e refused) Unwrap() error { return e.error }

type mistake struct{ error }

// Mistake says so to internal/join.
func (mistake) Mistake() bool { return true }

// Unwrap returns the error.
func (e mistake) Unwrap() error { return e.error }
