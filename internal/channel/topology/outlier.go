package topology

import (
	"encoding/json"
	"fmt"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

// ParseOutlierDetection parses the configuration of a cluster: the JSON form of gRFC A50, without
// childPolicy. It returns nil for "".
func ParseOutlierDetection(text string) (*lbconfig.OutlierDetection, error) {
	if text == "" {
		return nil, nil
	}
	fields := make(map[string]json.RawMessage)
	if err := json.Unmarshal([]byte(text), &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("%s: %.100q given, want a JSON object (%v)", outlierDetectionName, text, err)
	}
	fields["childPolicy"] = json.RawMessage(`[{"` + weightedRoundRobinName + `":{}}]`)
	given, _ := json.Marshal(fields) // all fields have been parsed
	config := new(lbconfig.OutlierDetection)
	if err := lbconfig.Parse(outlierDetectionName, given, config); err != nil {
		return nil, err
	}
	config.ChildPolicy = lbconfig.Policy{}
	return config, nil
}

// OutlierDetectionJSON returns the text that ParseOutlierDetection parses.
func OutlierDetectionJSON(o *lbconfig.OutlierDetection) string {
	if o == nil {
		return ""
	}
	text, _ := json.Marshal(o) // numbers, durations and names are always encoded without an error
	return string(text)
}
