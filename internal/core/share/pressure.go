package share

import "time"

const (
	meanTime    = 250 * time.Millisecond // time that the mean covers, roughly
	usualTime   = 30 * time.Second       // how long the usual ratio takes to rise
	span        = 10 * time.Second       // the lowest ratio is from this span or the one before
	latencies   = 300 * time.Second      // how long a usual latency takes to rise
	surelyUsual = 0.25                   // up to this, any answer can raise the usual ratio
	lateEnough  = 5                      // with more late answers than this, we cut
)

// pressure follows what fraction of their budgets answers take. It's high if the mean exceeds twice
// the usual one. Being slow by nature doesn't count.
type pressure struct {
	mean, usual float64
	calmAt      time.Duration // last time that the mean was low
	sinceCalm   int
	good        float64    // like mean, but only for good answers
	lowest      [2]float64 // lowest ratio of a good answer in this span of 10 s and in the one before
	lowestAt    time.Duration
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

// The weight of a new answer in a mean over the last quarter of a second.
func weight(elapsed time.Duration) float64 { return min(0.3, elapsed.Seconds()/meanTime.Seconds()) }

// learn lowers the usual ratio quickly and raises it slowly. Above a quarter, it can't rise beyond
// the lowest ratio of the last two spans. That way, a queue that comes and goes doesn't become
// usual.
func (p *pressure) learn(now time.Duration, ratio float64, elapsed time.Duration) {
	if now-p.lowestAt >= span || p.lowestAt == 0 {
		p.lowest, p.lowestAt = [2]float64{ratio, p.lowest[0]}, now
	}
	p.lowest[0] = min(p.lowest[0], ratio)
	low := min(p.lowest[0], p.lowest[1]) // 0 in the first span, when usual is no lower than lowest[0] anyway
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

// wasFilling goes by the last good answers, since calls are failing by the time we ask.
func (p *pressure) wasFilling() bool { return p.good > filling && p.good > 2*p.usual }

// latency is the usual latency. We learn a lower one at once and a higher one slowly. 0 means
// unknown.
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
