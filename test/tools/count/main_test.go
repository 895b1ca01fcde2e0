package main

import "testing"

// These have grown beyond need once.
func TestPackagesStaySmall(t *testing.T) {
	rooms, err := count("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for room, others := range map[string][]string{
		"cmd/understudy":           {"cmd/understudy/internal/table"},
		"discovery":                {"discovery/eds", "discovery/failover", "discovery/file", "discovery/srv"},
		"internal/channel/join":    {"internal/core/join", "internal/channel/topology"},
		"internal/config/options":  {"internal/config/lbconfig"},
		"internal/envoy":           {"internal/core/clusters", "internal/envoy/messages", "internal/envoy/cds", "internal/envoy/clusterfile", "internal/envoy/filewatch"},
		"internal/envoy/adsclient": {"internal/core/ads"},
	} {
		for _, other := range others {
			rooms[room] += rooms[other]
		}
	}
	for room, limit := range map[string]int{
		"discovery":                          2250,
		"discovery/kubernetes":               1240,
		"internal/channel/join":              2900,
		"internal/core/priority":             485,
		"internal/config/options":            950,
		"internal/envoy/adsclient":           1485,
		"cmd/understudy":                     300,
		"cmd/understudy/internal/demo":       650,
		"cmd/understudy/internal/explain":    650,
		"cmd/understudy/internal/kubeconfig": 60,
		"cmd/understudy/internal/serve":      1750,
		"cmd/understudy/internal/watch":      800,
		"internal/envoy":                     2115,
	} {
		if rooms[room] == 0 || rooms[room] > limit {
			t.Errorf("%s has %d code lines, want at most %d", room, rooms[room], limit)
		}
	}
}
