package sim

import "slices"

// right returns the priorities that may be in use once everything has settled, in order. In A56 it
// is the highest reachable one. There may be several if a priority is between its mark and its
// recovery mark, or if calls to some endpoint fail, which may be ejected or not. There is none if
// nothing is reachable. The lock is held.
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
		return all[:1] // all are too small: the highest
	}
	return all
}

// connects reports whether an endpoint is reachable, which is all that A56 sees.
func (w *World) connects(address string) bool { return w.conditions[address].connects() }

// answers reports whether an endpoint is reachable and cannot be ejected. Only outlier detection
// sees the difference.
func (w *World) answers(address string) bool {
	c := w.conditions[address]
	for _, tier := range w.known {
		if d := tier.detection(); d.ejects() && slices.Contains(tier.Serving(), address) && (!c.works() || c.suspect(d)) {
			return false
		}
	}
	return c.connects()
}

// part returns the share of a priority's weight in endpoints that are up. With pickFirst one
// endpoint has all calls of a locality, so that the locality counts completely or not at all.
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
