package sim

// right returns which of some priorities should be in use once everything has settled, in
// order: one in A56, the highest that can be reached. There may be several where a priority
// is between its mark and its recovery mark, or where calls to some endpoint fail, which
// outlier detection may have taken out of use or not; then calls may go to each of them.
// There is none if nothing can be reached. The lock is held.
func (w *World) right(truth Truth) []int {
	var some, all []int
	for i, tier := range truth {
		good, there := tier.part(w.answers), tier.part(w.connects)
		if there == 0 {
			continue
		}
		all = append(all, i)
		tried := w.settings.outliers && good < there // by a few of the calls
		if there >= w.settings.minReady || tried {
			some = append(some, i)
		}
		if good > 0 && good >= max(w.settings.minReady, w.settings.recovery) {
			return some
		}
	}
	if w.settings.minReady == 0 && !w.settings.outliers || len(all) == 0 {
		return some
	}
	return all
}

// connects says whether an endpoint can be reached, which is all that A56 sees.
func (w *World) connects(address string) bool { return w.conditions[address].connects() }

// answers says whether an endpoint can be reached, and cannot be ejected. Only outlier
// detection sees the difference.
func (w *World) answers(address string) bool {
	c := w.conditions[address]
	if !w.settings.outliers {
		return c.connects()
	}
	return c.works() && !c.suspect()
}

// part returns the part of a tier's weight that the endpoints hold for which up is true.
func (t Tier) part(up func(address string) bool) float64 {
	part, whole := 0.0, 0.0
	for _, l := range t {
		if all := l.load(func(string) bool { return true }); all > 0 {
			part += float64(l.Weight) * l.load(up) / all
		}
		whole += float64(l.Weight)
	}
	return part / max(whole, 1)
}
