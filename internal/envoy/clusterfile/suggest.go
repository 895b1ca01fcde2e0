package clusterfile

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// notSuggested lists the fields that suggest omits, because they are rejected or have no effect.
var notSuggested = map[protoreflect.Name]bool{
	"named_endpoints": true, "overprovisioning_factor": true, "endpoint_stale_after": true, "weighted_priority_health": true,
	"load_balancer_endpoints": true, "leds_cluster_locality_config": true, "endpoint_name": true, "envoy_internal_address": true,
	"named_port": true, "resolver_name": true, "ipv4_compat": true, "network_namespace_filepath": true,
}

// suggest returns the end of an error about an unknown field. It names the field whose name is most
// similar, or all fields if none is similar.
func suggest(name string, fields protoreflect.FieldDescriptors) string {
	camelCase := strings.ToLower(name) != name
	best, bestDistance := "", len(name)/3+1
	var all []string
	for i := range fields.Len() {
		if notSuggested[fields.Get(i).Name()] {
			continue
		}
		candidate := fields.Get(i).TextName()
		if camelCase {
			candidate = fields.Get(i).JSONName()
		}
		all = append(all, candidate)
		distance := editDistance(name, candidate)
		if len(name) > 3 && strings.Contains(candidate, name) {
			distance = min(distance, 1)
		}
		if distance <= bestDistance && (best == "" || distance < bestDistance) {
			best, bestDistance = candidate, distance
		}
	}
	if best != "" {
		return ", did you mean " + best + "?"
	}
	return ", want one of " + strings.Join(all, ", ")
}

// editDistance returns the Levenshtein distance between the first maxShown bytes of a, and b.
func editDistance(a, b string) int {
	a = a[:min(len(a), maxShown)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
