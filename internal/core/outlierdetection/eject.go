package outlierdetection

import (
	"math"
	"time"
)

func (c *Core[T]) ejectionTime(e *Endpoint[T]) time.Duration {
	base := c.config.BaseEjectionTime
	longest := max(base, c.config.MaxEjectionTime)
	if base > 0 && e.multiplier > int64(math.MaxInt64/base) {
		return longest
	}
	return min(base*time.Duration(e.multiplier), longest)
}

// EjectedUntil returns when the endpoint's ejection time is over. It stays ejected until the next
// Sweep.
func (c *Core[T]) EjectedUntil(e *Endpoint[T]) time.Time {
	return c.epoch.Add(e.ejectedAt).Add(c.ejectionTime(e))
}

func (c *Core[T]) eject(e *Endpoint[T], now time.Time, enforcementPercentage uint32, algorithm Algorithm) {
	if c.random() >= enforcementPercentage {
		return
	}
	c.setState(e, Ejected)
	e.ejectedAt, e.algorithm = now.Sub(c.epoch), algorithm
	e.multiplier++
	c.outcome.Ejections = append(c.outcome.Ejections, Ejection[T]{e, algorithm})
}

// limitReached is about A50's "maximum % of an address list that can be ejected". We always allow
// one endpoint.
func (c *Core[T]) limitReached() bool {
	return c.ejected > 0 && uint64(c.ejected+1)*100 > uint64(c.config.MaxEjectionPercent)*uint64(len(c.endpoints))
}
