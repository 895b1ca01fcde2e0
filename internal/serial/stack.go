package serial

// growStack gives the goroutine at once the stack that it is going to need. A new one
// has 2 kB, and an update of a tree is deep: each time that the stack doubles, all frames
// are moved. When 1,000 channels failed over, that was a fifth of what reports cost. It
// is for policies with hooks, which are those with others below them: a pick_first that
// hears of health does little.
//
//go:noinline
func growStack() {
	var space [8 << 10]byte
	touch(&space)
}

//go:noinline
func touch(*[8 << 10]byte) {}
