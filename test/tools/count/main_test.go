package main

import "testing"

// These have grown beyond need once.
func TestRoomsStaySmall(t *testing.T) {
	rooms, err := count("../../..")
	if err != nil {
		t.Fatal(err)
	}
	rooms["cmd/understudy"] += rooms["cmd/understudy/internal/table"]
	rooms["internal/config/options"] += rooms["internal/config/lbconfig"]
	rooms["internal/envoy/adsclient"] += rooms["internal/core/ads"]
	for _, room := range []string{"internal/core/clusters", "internal/envoy/messages", "internal/envoy/cds", "internal/envoy/clusterfile", "internal/envoy/filewatch"} {
		rooms["internal/envoy"] += rooms[room]
	}
	for _, room := range []string{"discovery/eds", "discovery/failover", "discovery/file", "discovery/srv"} {
		rooms["discovery"] += rooms[room]
	}
	for room, limit := range map[string]int{
		"discovery":                          2881,
		"discovery/kubernetes":               1250,
		"internal/core/priority":             560,
		"internal/config/options":            950,
		"internal/envoy/adsclient":           1500,
		"cmd/understudy":                     300,
		"cmd/understudy/internal/demo":       650,
		"cmd/understudy/internal/kubeconfig": 60,
		"cmd/understudy/internal/serve":      1750,
		"cmd/understudy/internal/watch":      800,
		"internal/envoy":                     2693,
	} {
		if rooms[room] == 0 || rooms[room] > limit {
			t.Errorf("%s has %d code lines, want at most %d", room, rooms[room], limit)
		}
	}
}
