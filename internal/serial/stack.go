package serial

// growStack grows the goroutine's stack in one step. A new stack has 2 kB, updates of a tree are
// deep, and each doubling copies all frames. This was a fifth of the cost of reports when 1,000
// channels failed over. It is for policies with hooks, which are those with children.
//
//go:noinline
func growStack() {
	var space [8 << 10]byte
	touch(&space)
}

//go:noinline
func touch(*[8 << 10]byte) {}
