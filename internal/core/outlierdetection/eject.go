package outlierdetection

import (
	"math"
	"time"
)

// ejectionTime returns min(base_ejection_time * multiplier, max(base_ejection_time,
// max_ejection_time)).
func (c *Core[T]) ejectionTime(e *Endpoint[T]) time.Duration {
	base := c.config.BaseEjectionTime
	longest := max(base, c.config.MaxEjectionTime)
	if base > 0 && e.multiplier > int64(math.MaxInt64/base) {
		return longest
	}
	return min(base*time.Duration(e.multiplier), longest)
}

// EjectedUntil returns the time at which the ejection of an endpoint expires. The first Sweep after
// this time ends the ejection.
func (c *Core[T]) EjectedUntil(e *Endpoint[T]) time.Time {
	return c.epoch.Add(e.ejectedAt).Add(c.ejectionTime(e))
}

// eject ejects an endpoint with the given probability (A50, "Ejection and Un-ejection").
func (c *Core[T]) eject(e *Endpoint[T], now time.Time, enforcementPercentage uint32, algorithm Algorithm) {
	if c.random() >= enforcementPercentage {
		return
	}
	c.setState(e, Ejected)
	e.ejectedAt, e.algorithm = now.Sub(c.epoch), algorithm
	e.multiplier++
	c.outcome.Ejections = append(c.outcome.Ejections, Ejection[T]{e, algorithm})
}

// limitReached reports whether the limit that A50 calls "the maximum % of an address list that can
// be ejected" is reached. One endpoint may always be ejected.
func (c *Core[T]) limitReached() bool {
	return c.ejected > 0 && uint64(c.ejected+1)*100 > uint64(c.config.MaxEjectionPercent)*uint64(len(c.endpoints))
}
