package weighted

// Scheduled adds up the picks of a policy's children over all of the policy's pickers. It reads the
// counts of the schedulers, so picks do not become slower. Its methods must be called in events of
// the policy, except that the function from Now may be called at any time.
type Scheduled[C comparable] struct {
	over   map[C]uint64
	picker *Picker
	of     []C
	gone   map[C]bool
}

// Use sets the current picker, which may be nil, and its children. Later picks of the previous
// picker are not counted.
func (s *Scheduled[C]) Use(picker *Picker, children []C) {
	if s.picker != nil {
		for i, n := range s.picker.Counts() {
			if s.gone[s.of[i]] {
				continue
			}
			if s.over == nil {
				s.over = make(map[C]uint64)
			}
			s.over[s.of[i]] += n
		}
	}
	s.picker, s.of, s.gone = picker, children, nil
}

// Forget discards the picks of a removed child.
func (s *Scheduled[C]) Forget(child C) {
	delete(s.over, child)
	if s.picker != nil {
		if s.gone == nil {
			s.gone = make(map[C]bool)
		}
		s.gone[child] = true
	}
}

// Now returns a function that returns the number of picks of each child up to the time at which it
// is called.
func (s *Scheduled[C]) Now(children []C) func() []uint64 {
	over := make([]uint64, len(children))
	at := make(map[C]int, len(children))
	for i, c := range children {
		over[i] = s.over[c]
		at[c] = i
	}
	picker, of := s.picker, make([]int, len(s.of))
	for i, c := range s.of {
		of[i] = -1
		if place, ok := at[c]; ok {
			of[i] = place
		}
	}
	return func() []uint64 {
		sum := append([]uint64(nil), over...)
		if picker != nil {
			for i, n := range picker.Counts() {
				if of[i] >= 0 {
					sum[of[i]] += n
				}
			}
		}
		return sum
	}
}
