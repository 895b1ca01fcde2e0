package explain

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/understudy-lb/understudy/internal/rehearse"
)

// Unless the user has told us the capacities, we compare the weights of the endpoints.
func (r *Result) warn(o Options, overflow bool) (err error) {
	unit, capacity, endpoints := "%s of %s calls/s", make([]float64, r.numbers), make([]int, r.numbers)
	each := make([]float64, r.numbers) // 0 means use the weight
	if len(o.Capacity) > 0 {
		if each, err = Capacities(o.Capacity, len(capacity)); err != nil {
			return err
		}
	} else if unit = "weight %s of %s"; o.Rate > 0 {
		return errors.New("--rate: given without --capacity, want both")
	}
	for _, e := range r.Endpoints {
		switch n := each[e.Priority]; {
		case e.StandsFor != "":
			return nil // there's no telling how many endpoints there are
		case e.Health == "":
			capacity[e.Priority], endpoints[e.Priority] = capacity[e.Priority]+cmp.Or(n, float64(e.Weight)), endpoints[e.Priority]+1
		}
	}
	r.Warnings = rehearse.Warnings(capacity, endpoints, o.Rate, overflow, unit)
	return nil
}

// Capacities parses the capacity that an endpoint of each priority has, in calls per second.
func Capacities(given map[string]string, priorities int) (all []float64, err error) {
	for p := range priorities {
		rate, ok := given[fmt.Sprintf("p%d", p)]
		if !ok {
			return nil, fmt.Errorf("--capacity: p%d is missing, want what one of its endpoints can answer, such as p%d=20/s", p, p)
		}
		capacity, err := parseRate(rate)
		if err != nil {
			return nil, fmt.Errorf("--capacity p%d: %w", p, err)
		}
		all = append(all, capacity)
	}
	if len(given) > priorities {
		return nil, fmt.Errorf("--capacity: %d priorities given, want p0 to p%d", len(given), priorities-1)
	}
	return all, nil
}

func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if err != nil || !(rate >= 0.001 && rate <= 1e6) {
		return 0, fmt.Errorf("%.100q given, want calls in a second, from 0.001 to 1000000, such as 20/s", text)
	}
	return rate, nil
}
