package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// chooseBalance completes the settings for prefer=balance. It turns off the other options that
// affect how calls are distributed among zones, and draws a random zoneCallers.
func (s *settings) chooseBalance(r *rand.Rand) {
	s.near.zoneMinEndpoints = 0
	s.outlierDetection, s.pickFirst = "false", false
	if r.IntN(2) == 0 {
		return
	}
	s.near.zoneCallers = make(map[string]int)
	for zone := range strings.SplitSeq("a b c d e f", " ") {
		if n := r.IntN(4); n > 0 {
			s.near.zoneCallers[zone] = n
		}
	}
	if len(s.near.zoneCallers) == 0 {
		s.near.zoneCallers = nil
	}
}

// isBalanced reports whether prefer=balance applies to a priority. The client must know its zone,
// and the priority must have usable endpoints.
func (n nearby) isBalanced(t Tier) bool {
	return n.prefer == "balance" && n.zone != "" && len(t.Serving()) > 0 && t[0].Zone != ""
}

// balance splits a priority of the source into two near groups: one with all zones, and one with
// the zones that get no calls. It sets the weights of all zones to 1, because they have no effect.
func (n nearby) balance(t Tier) EndpointSet {
	if !n.isBalanced(t) {
		return EndpointSet{t}
	}
	shares := n.zoneShares(t, func(l Locality) float64 { return l.upWeight(func(string) bool { return true }) })
	all, rest := slices.Clone(t), Tier{}
	for i := range all {
		all[i].Weight = 1
		if shares[all[i].Zone] == 0 {
			rest = append(rest, all[i])
		}
	}
	if len(rest) == 0 {
		return EndpointSet{all}
	}
	return EndpointSet{all, rest}
}

// isOwnZone reports whether a zone is the client's own. The zone may have the form "region/zone".
func (n nearby) isOwnZone(zone string) bool {
	region, name := splitZone(zone)
	return name == n.zone && (n.region == "" || region == "" || n.region == region)
}

func (n nearby) callersIn(l Locality) float64 {
	if n.zoneCallers == nil && n.countEmptyZones {
		return 1
	} else if n.zoneCallers == nil {
		return min(1, float64(len(l.Endpoints)))
	}
	return float64(n.zoneCallers[l.Zone[strings.LastIndex(l.Zone, "/")+1:]])
}

// zoneShares returns each zone's share of the calls by the formula in docs/near.md. capacityOf
// returns the capacity of the usable endpoints in a zone.
func (n nearby) zoneShares(t Tier, capacityOf func(Locality) float64) map[string]float64 {
	var capacity, callers float64
	for _, l := range t {
		capacity += capacityOf(l)
		callers += n.callersIn(l)
	}
	if n.zoneCallers != nil { // also count the callers in zones without endpoints
		callers = 0
		hasEndpoints := func(zone string) bool {
			return slices.ContainsFunc(t, func(l Locality) bool { return l.Zone == zone || strings.HasSuffix(l.Zone, "/"+zone) })
		}
		for zone, number := range n.zoneCallers {
			if !hasEndpoints(zone) {
				callers += float64(number)
			}
		}
		for _, l := range t {
			callers += n.callersIn(l)
		}
	}
	u := func(l Locality) float64 { return capacityOf(l) / max(capacity, 1e-9) }
	c := func(l Locality) float64 { return n.callersIn(l) / max(callers, 1e-9) }
	shares, ownShare, excess := make(map[string]float64), 0.0, 0.0
	for _, l := range t {
		if n.isOwnZone(l.Zone) && u(l) > 0 && c(l) > 0 {
			ownShare = min(1, u(l)/c(l))
			shares[l.Zone] = ownShare
		}
		excess += max(0, u(l)-c(l))
	}
	if ownShare > 1-1e-9 {
		return shares
	}
	for _, l := range t {
		fraction := u(l)
		if excess > 1e-9 {
			fraction = max(0, u(l)-c(l)) / excess
		}
		if fraction > 1e-9 {
			shares[l.Zone] += (1 - ownShare) * fraction
		}
	}
	return shares
}

// balancedShares returns all distributions of calls among the endpoints of a priority that are
// correct. There may be several, because the channel does not connect to a zone that gets no calls
// and may therefore assume that unreachable endpoints in that zone are usable.
//
// A zone without endpoints in the channel's update may have draining endpoints in the source, and
// may or may not count as having callers.
func (n nearby) balancedShares(t Tier, isUp func(string) bool) (all []map[string]float64) {
	if n.zoneCallers == nil && !n.countEmptyZones && slices.ContainsFunc(t, func(l Locality) bool { return len(l.Endpoints) == 0 }) {
		listed := n
		listed.countEmptyZones = true
		all = listed.balancedShares(t, isUp)
	}
	whole := func(l Locality) float64 { return l.upWeight(func(string) bool { return true }) }
	for assumedUp := range 1 << len(t) {
		capacityOf := func(l Locality) float64 {
			i := slices.IndexFunc(t, func(o Locality) bool { return o.Zone == l.Zone })
			if assumedUp>>i&1 == 1 {
				return whole(l)
			}
			return l.upWeight(isUp)
		}
		shares, possible, byAddress := n.zoneShares(t, capacityOf), true, make(map[string]float64)
		for _, l := range t {
			if fraction := shares[l.Zone]; fraction > 0 {
				possible = possible && capacityOf(l) == l.upWeight(isUp)
				for _, e := range l.Endpoints {
					if !e.Draining && isUp(e.Address) {
						byAddress[e.Address] = fraction * float64(e.Weight) / l.upWeight(isUp)
					}
				}
			}
		}
		if possible {
			all = append(all, byAddress)
		}
	}
	return all
}

// tolerance returns how much the shares may deviate from the formula. The policy rounds shares to
// 1/64 of the total capacity.
func (n nearby) tolerance(t Tier) float64 {
	callers, own := 0.0, 0.0
	for _, l := range t {
		callers += n.callersIn(l)
		if n.isOwnZone(l.Zone) {
			own = n.callersIn(l)
		}
	}
	for _, number := range n.zoneCallers {
		callers += float64(number) // the sum is an upper bound, because callers in the priority's zones are counted twice
	}
	if own == 0 {
		return 0.01 + 2./64
	}
	return 0.01 + callers/own/64
}

func (w *World) checkBalance(q expectation, counts map[string]int) {
	if len(q.balanced) == 0 {
		return
	}
	matches := func(shares map[string]float64) bool {
		for _, address := range q.endpoints {
			if math.Abs(float64(counts[address])/float64(q.calls)-shares[address]) > q.tolerance {
				return false
			}
		}
		return true
	}
	if !slices.ContainsFunc(q.balanced, matches) {
		w.Log.Break(ruleShares, "of %d calls p%d got %v, want shares such as %v", q.calls, q.priorities, counts, fmt.Sprint(q.balanced))
	}
}

// zoneCallersLine checks the log line which says that zoneCallers names zones without endpoints.
func (w *World) zoneCallersLine([]string) string {
	if w.settings.near.zoneCallers == nil {
		return "zoneCallers is not set"
	}
	return ""
}
