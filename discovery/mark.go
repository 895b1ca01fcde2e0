package discovery

// Refused marks an error: there was an answer, but the source refused it as invalid. Metrics count
// it as refused rather than failed. The text stays. Refused(nil) is nil.
func Refused(err error) error {
	if err == nil {
		return nil
	}
	return refused{err}
}

// Mistake marks an error that does not go away by waiting, such as an unknown service: the user
// must change something. It is shown as a mistake, and otherwise handled like other errors.
// Mistake(nil) is nil.
func Mistake(err error) error {
	if err == nil {
		return nil
	}
	return mistake{err}
}

type refused struct{ error }

// Refused marks the error for internal/join.
func (refused) Refused() bool { return true }

// Unwrap returns the error.
func (e refused) Unwrap() error { return e.error }

type mistake struct{ error }

// Mistake marks the error for internal/join.
func (mistake) Mistake() bool { return true }

// Unwrap returns the error.
func (e mistake) Unwrap() error { return e.error }
