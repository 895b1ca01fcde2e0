package priority

import "time"

const slotTime = 10 * time.Second // sixty are ten minutes

// history keeps the lowest share of each slot for debug pages. The zero value is a share of 1.
type history struct {
	missing [60]float64 // 1 - the lowest share
	slot    int         // number of the current one
	current float64
}

func (h *history) record(now time.Duration, fraction float64) {
	slot := int(now / slotTime)
	for h.slot = max(h.slot, slot-len(h.missing)); h.slot < slot; {
		h.slot++
		h.missing[h.slot%len(h.missing)] = h.current
	}
	h.current = 1 - fraction
	latest := &h.missing[h.slot%len(h.missing)]
	*latest = max(*latest, h.current)
}

func (h *history) lowest() (shares []float64) {
	for n := range h.missing {
		shares = append(shares, 1-h.missing[(h.slot+1+n)%len(h.missing)])
	}
	return shares
}
