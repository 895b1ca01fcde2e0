package sim

import "slices"

// right returns which of some priorities should be in use once everything has settled, in
// order: one in A56, the highest that can be reached. There may be several where a priority
// is between its mark and its recovery mark, or where calls to some endpoint fail, which
// outlier detection may have taken out of use or not; then calls may go to each of them.
// There is none if nothing can be reached. The lock is held.
func (w *World) right(truth Truth) []int {
	var some, all []int
	detects := false
	for i, tier := range truth {
		good, there := w.settings.part(tier, w.answers), w.settings.part(tier, w.connects)
		detects = detects || tier.detection().ejects()
		if there == 0 {
			continue
		}
		all = append(all, i)
		tried := tier.detection().ejects() && good < there // by a few of the calls
		if there >= w.settings.minReady || tried {
			some = append(some, i)
		}
		if good > 0 && good >= max(w.settings.minReady, w.settings.recovery) {
			return some
		}
	}
	switch {
	case w.settings.minReady == 0 && !detects || len(all) == 0:
		return some
	case !detects && len(some) == 0:
		return all[:1] // too little of each is READY: the highest
	}
	return all
}

// connects says whether an endpoint can be reached, which is all that A56 sees.
func (w *World) connects(address string) bool { return w.conditions[address].connects() }

// answers says whether an endpoint can be reached, and cannot be ejected. Only outlier
// detection sees the difference.
func (w *World) answers(address string) bool {
	c := w.conditions[address]
	for _, tier := range w.known {
		if d := tier.detection(); d.ejects() && slices.Contains(tier.Serving(), address) && (!c.works() || c.suspect(d)) {
			return false
		}
	}
	return c.connects()
}

// part returns the part of a tier's weight that the endpoints hold for which up is true. With
// pickFirst one of a locality has all its calls, so it is all there or not at all.
func (s settings) part(t Tier, up func(address string) bool) float64 {
	part, whole := 0.0, 0.0
	for _, l := range t {
		if all := l.load(func(string) bool { return true }); all > 0 {
			held := l.load(up) / all
			if s.pickFirst && held > 0 {
				held = 1
			}
			part += float64(l.Weight) * held
		}
		whole += float64(l.Weight)
	}
	return part / max(whole, 1)
}
