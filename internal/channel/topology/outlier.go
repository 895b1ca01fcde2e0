package topology

import (
	"encoding/json"
	"fmt"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

// ParseOutlierDetection parses a cluster's outlier detection, which is JSON as in gRFC A50 but
// without childPolicy. It returns nil for "".
func ParseOutlierDetection(text string) (*lbconfig.OutlierDetection, error) {
	if text == "" {
		return nil, nil
	}
	fields := make(map[string]json.RawMessage)
	if err := json.Unmarshal([]byte(text), &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("%s: %.100q given, want a JSON object (%v)", outlierDetectionName, text, err)
	}
	fields["childPolicy"] = json.RawMessage(`[{"` + weightedRoundRobinName + `":{}}]`)
	given, _ := json.Marshal(fields) // can't fail, we've just parsed all fields
	config := new(lbconfig.OutlierDetection)
	if err := lbconfig.Parse(outlierDetectionName, given, config); err != nil {
		return nil, err
	}
	config.ChildPolicy = lbconfig.Policy{}
	return config, nil
}

// OutlierDetectionJSON is the inverse of ParseOutlierDetection.
func OutlierDetectionJSON(o *lbconfig.OutlierDetection) string {
	if o == nil {
		return ""
	}
	text, _ := json.Marshal(o) // can't fail, it's all numbers, durations and names
	return string(text)
}
