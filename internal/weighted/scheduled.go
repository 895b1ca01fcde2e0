package weighted

// Scheduled is how many picks the children of a policy have had, over all of its pickers.
// They are read from the schedulers, so that a pick costs nothing more. It is used in
// events; what Now returns may be called at any time.
type Scheduled[C comparable] struct {
	over   map[C]uint64 // by pickers that are not in use any more
	picker *Picker      // in use
	of     []C          // its children
	gone   map[C]bool   // those that were forgotten since
}

// Use notes the picker in use, nil for none, and its children. Picks with the one before
// that come later do not count.
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

// Forget forgets a child that is gone.
func (s *Scheduled[C]) Forget(child C) {
	delete(s.over, child)
	if s.picker != nil {
		if s.gone == nil {
			s.gone = make(map[C]bool)
		}
		s.gone[child] = true
	}
}

// Now returns a function that says how many picks each of the children has had.
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
