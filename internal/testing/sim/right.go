package sim

import "slices"

// right returns the priorities that may be in use when nothing changes any more, in order. By gRFC
// A56, this is the highest one that can be reached. There may be several if the READY share of a
// priority is between minReady and minReadyRecovery, or if endpoints may or may not be ejected.
// There is none if no endpoint can be reached. The caller holds the lock.
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
		tried := tier.detection().ejects() && good < there // outlier detection tries the ejected endpoints with a few calls
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
		return all[:1] // all priorities are too small, so the highest is used
	}
	return all
}

// connects reports whether an endpoint can be reached. gRFC A56 considers nothing else.
func (w *World) connects(address string) bool { return w.conditions[address].connects() }

// answers reports whether an endpoint can be reached and cannot be ejected.
func (w *World) answers(address string) bool {
	c := w.conditions[address]
	for _, tier := range w.known {
		if d := tier.detection(); d.ejects() && slices.Contains(tier.Serving(), address) && (!c.works() || c.suspect(d)) {
			return false
		}
	}
	return c.connects()
}

// part returns the fraction of a priority's weight that belongs to endpoints that are up. With
// pickFirst, one endpoint gets all calls of a locality, so the locality counts completely or not at
// all.
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
