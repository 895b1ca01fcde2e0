package serial

// growStack grows the stack of a new goroutine in one step. A stack begins with 2 kB, an update of
// a tree of policies needs much more, and each time the stack doubles, all frames are copied. When
// 1,000 channels failed over, this was a fifth of the cost of reports. Only policies with hooks,
// which have children, need it.
//
//go:noinline
func growStack() {
	var space [8 << 10]byte
	touch(&space)
}

//go:noinline
func touch(*[8 << 10]byte) {}
