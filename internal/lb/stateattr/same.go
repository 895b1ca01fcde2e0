package stateattr

// Same returns the result of equal, a function that compares attributes. gRPC's Equal methods panic
// if an attribute can't be compared with ==. In that case, Same returns false.
func Same(equal func() bool) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return equal()
}
