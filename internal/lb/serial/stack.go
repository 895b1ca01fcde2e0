package serial

// A stack begins with 2 kB, but an update of a tree of policies needs much more. We grow it in one
// step. Otherwise, the runtime doubles it several times and copies all frames each time, which was
// a fifth of the cost of reports when 1,000 channels failed over. Only serializers with hooks,
// those of policies with children, need this.
//
//go:noinline
func growStack() {
	var space [8 << 10]byte
	touch(&space)
}

//go:noinline
func touch(*[8 << 10]byte) {}
