package priority

import "time"

const bucketTime = 10 * time.Second // the page shows sixty of these, i.e. ten minutes

// history remembers the lowest share in each bucket for the debug page. The zero value is a share
// of 1.
type history struct {
	missing [60]float64 // 1 - the lowest share of each bucket
	bucket  int
	current float64
}

func (h *history) record(now time.Duration, fraction float64) {
	bucket := int(now / bucketTime)
	for h.bucket = max(h.bucket, bucket-len(h.missing)); h.bucket < bucket; {
		h.bucket++
		h.missing[h.bucket%len(h.missing)] = h.current
	}
	h.current = 1 - fraction
	latest := &h.missing[h.bucket%len(h.missing)]
	*latest = max(*latest, h.current)
}

func (h *history) lowest() (shares []float64) {
	for n := range h.missing {
		shares = append(shares, 1-h.missing[(h.bucket+1+n)%len(h.missing)])
	}
	return shares
}
