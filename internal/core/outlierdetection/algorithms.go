package outlierdetection

import (
	"math"
	"time"
)

// successRate is A50's "Success Rate Algorithm". We skip endpoints that are already ejected, since
// their calls began before that.
func (c *Core[T]) successRate(config *SuccessRateEjection) {
	// If the number of addresses with request volume of at least request_volume is
	// less than minimum_hosts, stop.
	var rates []float64
	for _, e := range c.endpoints {
		if hasVolume(e, config.RequestVolume) {
			rates = append(rates, rate(e.Successes, e.calls()))
		}
	}
	if len(rates) < int(config.MinimumHosts) {
		return
	}
	// Calculate the mean and standard deviation of the fractions of successful
	// requests among them.
	mean, stdev := meanAndStdev(rates)
	for _, e := range c.endpoints {
		// If the percentage of ejected addresses is greater than max_ejection_percent,
		// stop.
		if c.limitReached() {
			return
		}
		// If the address's total request volume is less than request_volume, continue
		// to the next address.
		if e.Ejected() || !hasVolume(e, config.RequestVolume) {
			continue
		}
		// If the address's success rate is less than (mean - stdev * (stdev_factor /
		// 1000)), then choose a random integer in [0, 100).
		if rate(e.Successes, e.calls()) < mean-stdev*(float64(config.StdevFactor)/1000)-rounding {
			c.eject(e, c.started, config.EnforcementPercentage, SuccessRate)
		}
	}
}

func (c *Core[T]) failurePercentage(config *FailurePercentageEjection) {
	// If the number of addresses is less than minimum_hosts, stop.
	if len(c.endpoints) < int(config.MinimumHosts) {
		return
	}
	for _, e := range c.endpoints {
		// If the percentage of ejected addresses is greater than max_ejection_percent,
		// stop.
		if c.limitReached() {
			return
		}
		// If the address's total request volume is less than request_volume, continue
		// to the next address.
		if e.Ejected() || !hasVolume(e, config.RequestVolume) {
			continue
		}
		// If the address's failure percentage is greater than threshold, then choose a
		// random integer in [0, 100).
		if 100*e.Failures > uint64(config.Threshold)*e.calls() {
			c.eject(e, c.started, config.EnforcementPercentage, FailurePercentage)
		}
	}
}

// Failed ejects an endpoint after consecutive failures, like Envoy does. The policy counts the
// failures and calls Failed when it reaches the limit, after which it starts over. It also starts
// over when a call succeeds that began after the first of these failures, and at each Sweep while
// the endpoint is ejected. If the endpoint is Returned, the first failure is enough to call Failed.
// We ignore endpoints that are already ejected, because the failed calls began before the ejection.
func (c *Core[T]) Failed(e *Endpoint[T], now time.Time) {
	config := c.config.ConsecutiveFailuresEjection
	if config == nil || !e.present || e.Ejected() || c.limitReached() {
		return
	}
	c.eject(e, now, config.EnforcementPercentage, ConsecutiveFailures)
	c.updateVisible(e)
}

// hasVolume requires at least one call even if volume is 0, because an endpoint without calls has
// no success rate.
func hasVolume[T any](e *Endpoint[T], volume uint32) bool {
	return e.calls() >= max(1, uint64(volume))
}

// rounding exceeds the rounding error of a success rate. Without it, one of several endpoints with
// equal rates could look like an outlier.
const rounding = 1e-12

func rate(n, total uint64) float64 { return float64(n) / float64(total) }

func meanAndStdev(values []float64) (mean, stdev float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	for _, v := range values {
		stdev += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(stdev / float64(len(values)))
}
