package stateattr

// Same returns the result of equal, which compares attributes, or false if equal panics: gRPC's
// Equal methods panic if an attribute cannot be compared with ==.
func Same(equal func() bool) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return equal()
}
