package weightedtarget

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Balance has the children share the calls by their zones, as far as their endpoints have not
// failed (docs/near.md), in place of weights that the configuration gives.
type Balance struct {
	Zones []Zone
	Own   int // the client's zone among them, -1 for none
}

// Zone is a zone in which there are children or callers.
type Zone struct {
	Callers float64
	// Capacities are the weights of the endpoints of its children that can take calls.
	Capacities map[string]float64
}

// Step is how far the part of all capacity that a zone has must move before the shares follow, unless
// it becomes 0 or is 0 no longer. It is counted from the last shares, which are exact.
const Step = 1. / 64

// ReserveRetention is how long a child is kept that has no share any more. It is that of a priority that
// is not in use (gRFC A56).
const ReserveRetention = 15 * time.Minute

// allCalls is the weight of all calls.
const allCalls = 1 << 30

// balanced is what is shared by zones.
type balanced struct {
	*Balance
	parts   []float64         // of all capacity that each zone had, when the shares were made
	weights map[string]uint32 // of the children that have a share; nil where there is no capacity at all
}

// SetBalance takes what the next update says of zones, nil for nothing. The shares are made again.
//
// A child of a zone without a share is a reserve: it is not made before it has a share, and then kept for
// a time when it has none any more. A reserve gets calls only while no child with a share is READY.
func (c *Core) SetBalance(b *Balance) {
	c.balanced = balanced{Balance: b}
	if b != nil {
		c.share()
	}
}

// SetFailedPart notes which part of the weight below a child has failed, as of when it was READY last.
func (c *Core) SetFailedPart(name string, part float64) {
	if child, ok := c.children[name]; ok {
		child.failed = part
	}
}

// Rebalance makes the shares follow what the children count as. It is called after reports, and at the
// end of an update.
func (c *Core) Rebalance() (actions []Action) {
	if c.balanced.Balance == nil || !c.moved() {
		return nil
	}
	c.share()
	c.stale = true
	for _, zone := range c.balanced.Zones {
		for _, name := range slices.Sorted(maps.Keys(zone.Capacities)) {
			if child, ok := c.children[name]; ok && !child.retained {
				actions = append(actions, c.setReserve(name)...)
			} else {
				actions = append(actions, c.configure(name)...)
			}
		}
	}
	return actions
}

// left returns the capacity of a child that has not failed. A child that there is not has not failed.
func (c *Core) left(name string, capacity float64) float64 {
	switch child := c.children[name]; {
	case child == nil:
		return capacity
	case child.counts() == TransientFailure:
		return 0
	default:
		return capacity * (1 - child.failed)
	}
}

// capacity returns the capacity of each zone that has not failed; where all has, that of all.
func (c *Core) capacity() (zones []float64, left func(string, float64) float64) {
	sum := 0.0
	for _, left = range []func(string, float64) float64{c.left, func(_ string, all float64) float64 { return all }} {
		zones = make([]float64, len(c.balanced.Zones))
		for i, zone := range c.balanced.Zones {
			for _, name := range slices.Sorted(maps.Keys(zone.Capacities)) {
				zones[i] += left(name, zone.Capacities[name])
			}
			sum += zones[i]
		}
		if sum > 0 {
			break
		}
	}
	return zones, left
}

// moved reports whether the shares are to follow: see Step.
func (c *Core) moved() bool {
	zones, _ := c.capacity()
	for i, part := range sharesOf(zones) {
		if before := c.balanced.parts[i]; (part == 0) != (before == 0) || math.Abs(part-before) > Step-rounding {
			return true
		}
	}
	return false
}

// share makes the shares, exactly.
func (c *Core) share() {
	b := &c.balanced
	zones, left := c.capacity()
	b.parts, b.weights = sharesOf(zones), nil
	callers := make([]float64, len(zones))
	for i := range zones {
		callers[i] = b.Zones[i].Callers
	}
	for i, share := range Shares(zones, callers, b.Own) {
		for name, capacity := range b.Zones[i].Capacities {
			if part := share * left(name, capacity); part > 0 {
				if b.weights == nil {
					b.weights = make(map[string]uint32)
				}
				b.weights[name] = weightOf(part / zones[i])
			}
		}
	}
}

// weightOf returns the weight of a part of all calls.
func weightOf(part float64) uint32 { return uint32(max(1, math.Round(part*allCalls))) }

// isReserve reports whether a child has no share.
func (c *Core) isReserve(name string) bool {
	return c.balanced.weights != nil && c.balanced.weights[name] == 0
}

// setReserve notes whether a child has a share.
func (c *Core) setReserve(name string) []Action {
	child := c.children[name]
	switch reserve := c.isReserve(name); {
	case reserve == child.reserve:
		return nil
	case reserve:
		child.reserve = true
		return []Action{{Kind: Retain, Child: name, After: ReserveRetention}}
	}
	child.reserve = false
	return []Action{{Kind: Return, Child: name}}
}

// reserveEnded handles the end of the time for which a reserve is kept. One that has failed, in part, is
// kept on: nothing else knows that, and a zone of which it is forgotten would get its share again. So is
// one that has the calls while no child with a share is READY.
func (c *Core) reserveEnded(name string) []Action {
	if child := c.children[name]; child.failed > 0 || child.counts() == TransientFailure || slices.Contains(c.In(Ready), name) {
		return []Action{{Kind: Retain, Child: name, After: ReserveRetention}}
	}
	delete(c.children, name)
	return []Action{{Kind: Destroy, Child: name}}
}

// Balanced reports whether the children share the calls by zones.
func (c *Core) Balanced() bool { return c.balanced.Balance != nil }

// Weight returns which weight a child that is configured has, where its configuration gives it this
// one. A reserve has that of its part of all capacity.
func (c *Core) Weight(name string, given uint32) uint32 {
	if c.balanced.weights == nil {
		return given
	}
	if weight, ok := c.balanced.weights[name]; ok {
		return weight
	}
	zones, left := c.capacity()
	sum := 0.0
	for _, zone := range zones {
		sum += zone
	}
	for _, zone := range c.balanced.Zones {
		if capacity, ok := zone.Capacities[name]; ok {
			return weightOf(left(name, capacity) / sum)
		}
	}
	return 1 // not reached
}

// IsReserve reports whether a child that there is has no share.
func (c *Core) IsReserve(name string) bool { return c.children[name].reserve }
