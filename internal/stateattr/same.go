package stateattr

// Same returns the result of equal, which compares attributes. It returns false if equal panics, as
// gRPC's methods do if an attribute value cannot be compared.
func Same(equal func() bool) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return equal()
}
