package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"time"
)

const never = time.Duration(math.MaxInt64)

type result struct {
	first       time.Duration // from the fault to the first answer of a call that began after it
	lost, calls int
	longest     time.Duration
	changes     int // how often answers switched to the other priority
	connections int
}

type record struct {
	fault, contestant string
	run               int // counts from 1; 0 if the run was discarded
	result
}

func (r record) fields() []string {
	first := "never"
	if r.first != never {
		first = milliseconds(r.first)
	}
	return []string{r.fault, r.contestant, strconv.Itoa(r.run), first, strconv.Itoa(r.lost), strconv.Itoa(r.calls),
		milliseconds(r.longest), strconv.Itoa(r.changes), strconv.Itoa(r.connections)}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

var header = []string{"fault", "contestant", "run", "first answer (ms)", "lost", "calls", "longest call (ms)", "changes", "connections"}

func parse(fields []string) (record, error) {
	if len(fields) != len(header) {
		return record{}, fmt.Errorf("%d fields, expected %d", len(fields), len(header))
	}
	r := record{fault: fields[0], contestant: fields[1]}
	var first, longest int
	var errs []error
	for i, to := range map[int]*int{2: &r.run, 3: &first, 4: &r.lost, 5: &r.calls, 6: &longest, 7: &r.changes, 8: &r.connections} {
		if i == 3 && fields[i] == "never" {
			continue
		}
		var err error
		*to, err = strconv.Atoi(fields[i])
		errs = append(errs, err)
	}
	r.first, r.longest = time.Duration(first)*time.Millisecond, time.Duration(longest)*time.Millisecond
	if fields[3] == "never" {
		r.first = never
	}
	return r, errors.Join(errs...)
}

func load(name string) ([]record, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	var all []record
	for i, row := range rows[min(1, len(rows)):] {
		r, err := parse(row)
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", name, i+2, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func save(name string, all []record) error {
	rank := make(map[string]int)
	for i, f := range faults {
		rank[f.name] = i
	}
	for i, c := range contestants {
		rank[c.name] = i
	}
	rank[control.name] = len(contestants)
	slices.SortStableFunc(all, func(a, b record) int {
		return slices.Compare([]int{rank[a.fault], rank[a.contestant], a.run}, []int{rank[b.fault], rank[b.contestant], b.run})
	})
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	rows := [][]string{header}
	for _, r := range all {
		rows = append(rows, r.fields())
	}
	return errors.Join(csv.NewWriter(f).WriteAll(rows), f.Close())
}

type figure struct{ median, worst float64 }

func summary(all []record, of func(result) float64) map[[2]string]figure {
	values := make(map[[2]string][]float64)
	for _, r := range all {
		if r.run > 0 {
			key := [2]string{r.fault, r.contestant}
			values[key] = append(values[key], of(r.result))
		}
	}
	figures := make(map[[2]string]figure)
	for key, v := range values {
		slices.Sort(v)
		figures[key] = figure{v[len(v)/2], v[len(v)-1]}
	}
	return figures
}
