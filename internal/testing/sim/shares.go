package sim

import "math"

// share is a fraction of the calls that goes to a single one of its endpoints.
type share struct {
	endpoints []string
	part      float64
}

func (s settings) shares(t Tier, up func(address string) bool) []share {
	var all []share
	byAddress := t.Shares(up)
	for _, l := range t {
		whole := share{}
		for _, e := range l.Endpoints {
			part, ok := byAddress[e.Address]
			switch {
			case !ok:
			case s.pickFirst:
				whole.endpoints, whole.part = append(whole.endpoints, e.Address), whole.part+part
			default:
				all = append(all, share{[]string{e.Address}, part})
			}
		}
		if len(whole.endpoints) > 0 {
			all = append(all, whole)
		}
	}
	return all
}

func (w *World) checkShares(q quiet, counts map[string]int) {
	for _, s := range q.shares {
		n, several := 0, 0
		for _, address := range s.endpoints {
			if n += counts[address]; counts[address] > 0 {
				several++
			}
		}
		if got := float64(n) / float64(q.calls); math.Abs(got-s.part) > 0.01 {
			w.Log.Break(ruleShares, "%v of p%d got %.1f %% of the calls, want %.1f %%", s.endpoints, q.right, 100*got, 100*s.part)
		}
		if several > 1 {
			w.Log.Break(ruleShares, "%d of %v got calls, but pick_first must choose one", several, s.endpoints)
		}
	}
}

// share returns the share of one endpoint. It does not work with pickFirst.
func (q quiet) share(address string) float64 {
	for _, s := range q.shares {
		if s.endpoints[0] == address {
			return s.part
		}
	}
	return 0
}
