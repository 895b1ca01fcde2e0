package share

import "time"

const (
	meanTime    = 250 * time.Millisecond // in which the mean follows the answers
	usualTime   = 30 * time.Second       // in which the usual fraction rises
	span        = 10 * time.Second       // of which the lowest ratio is kept
	latencies   = 300 * time.Second      // in which a usual latency rises
	surelyUsual = 0.25                   // up to here, the usual ratio rises with any answer
	lateEnough  = 5                      // more late answers than this cut
)

// We follow which fraction of their budgets answers take. The pressure is high if the mean is above
// twice the usual one: calls that are slow by nature are no sign.
type pressure struct {
	mean, usual float64
	calmAt      time.Duration // when the mean was low the last time
	sinceCalm   int           // answers since then
	good        float64       // the mean of good answers only
	lowest      [2]float64    // ratio of a good answer in this and in the last span of 10 s
	lowestAt    time.Duration // when this span began
}

func (p *pressure) renew(now time.Duration) { p.calmAt, p.sinceCalm = now, 0 }

func (p *pressure) above(fraction float64) bool { return p.mean > fraction && p.mean > 2*p.usual }

func (p *pressure) isLate(ratio float64) bool { return ratio > late && ratio > 2*p.usual }

func (p *pressure) add(now time.Duration, a answer) {
	if !a.hasTime {
		return
	}
	if a.result == Good {
		p.good += (a.ratio - p.good) * min(0.6, a.elapsed.Seconds()/meanTime.Seconds())
		p.learn(now, a.ratio, a.elapsed)
	}
	if a.result == Good || a.result == Expired {
		p.mean += (a.ratio - p.mean) * weight(a.elapsed)
		if !p.above(late) {
			p.calmAt, p.sinceCalm = now, 0
		}
		p.sinceCalm++
	}
}

// weight is that of a new answer in a mean of the last quarter of a second.
func weight(elapsed time.Duration) float64 { return min(0.3, elapsed.Seconds()/meanTime.Seconds()) }

// The usual ratio goes down quickly and up slowly. Above a quarter, it only rises to the lowest
// ratio of the last spans: a queue comes and goes, and must not become usual.
func (p *pressure) learn(now time.Duration, ratio float64, elapsed time.Duration) {
	if now-p.lowestAt >= span || p.lowestAt == 0 {
		p.lowest, p.lowestAt = [2]float64{ratio, p.lowest[0]}, now
	}
	p.lowest[0] = min(p.lowest[0], ratio)
	low := p.lowest[0]
	if p.lowest[1] > 0 {
		low = min(low, p.lowest[1])
	}
	switch {
	case p.usual == 0:
		p.usual = ratio
	case ratio < p.usual:
		p.usual += (ratio - p.usual) / 8
	case p.usual < max(low, surelyUsual):
		risen := p.usual + (ratio-p.usual)*min(1./8, elapsed.Seconds()/usualTime.Seconds())
		p.usual = min(risen, max(low, surelyUsual))
	}
}

func (p *pressure) lasts(now time.Duration) bool {
	return now-p.calmAt >= window && p.sinceCalm > lateEnough && p.above(late)
}

// Others have failed since, so we look at the last good answers.
func (p *pressure) wasFilling() bool { return p.good > filling && p.good > 2*p.usual }

// latency is the usual latency, which is learned down at once and up slowly. 0 means unknown.
type latency time.Duration

func (l *latency) learn(took, elapsed time.Duration) {
	usual := time.Duration(*l)
	if usual == 0 || took < usual {
		usual = max(time.Millisecond, took)
	} else {
		usual += time.Duration(float64(min(took-usual, usual)) * min(1./8, elapsed.Seconds()/latencies.Seconds()))
	}
	*l = latency(usual)
}
