package sim

import (
	"fmt"
	"regexp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// hadNoEffect is true if a cluster ever set a field while the algorithm of the field was turned
// off. without is the name of the field that turns the algorithm on.
func (d *detections) hadNoEffect(field, without string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.history, func(d detection) bool {
		set := make(map[string]bool)
		d.proto().ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			set[string(f.Name())] = true
			return true
		})
		disabled := map[string]bool{"enforcing_success_rate": d.successRate.enforcement == 0, "enforcing_failure_percentage": d.failurePercentage.enforcement == 0}
		return set[field] && disabled[without]
	})
}

var notePattern = regexp.MustCompile(`(\w+) has no effect without (\w+)`)

func (w *World) uselessFieldLine(m []string) string {
	all := w.clusters()
	notes := notePattern.FindAllStringSubmatch(m[0], -1)
	for _, note := range notes {
		if !slices.ContainsFunc(all, func(d *detections) bool { return d.hadNoEffect(note[1], note[2]) }) {
			return fmt.Sprintf("no cluster gives %s without %s", note[1], note[2])
		}
	}
	if len(notes) == 0 {
		return "the line names no field"
	}
	return ""
}

func (w *World) pickFirstLine([]string) string {
	if !w.settings.pickFirst || len(w.clusters()) == 0 {
		return "the channel has no pick_first, or no clusters"
	}
	return ""
}

func (w *World) weightsLine([]string) string {
	if !w.settings.pickFirst {
		return "the channel has no pick_first"
	}
	return ""
}

func (w *World) clusters() (all []*detections) {
	if s := sourceOf[*edsSource](w); s != nil && s.clusters != nil {
		all = append(all, s.clusters.detections)
	}
	if s := sourceOf[*file](w); s != nil && s.clusters != nil {
		all = append(all, s.clusters.detections)
	}
	return all
}
