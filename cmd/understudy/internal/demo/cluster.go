package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// slot is a backend of the demo, whose process may be running or not.
type slot struct {
	locality       string // region/zone
	priority       int
	localityWeight uint32
	weight         uint32
	address        string
	process        *backend // nil while no process runs
}

func (s *slot) isRunning() bool { return s.process != nil }

func (s *slot) isServing() bool { return s.isRunning() && s.process.mode == serving }

const clusterName = "demo"

// cluster holds the demo's backends, in three localities of two priorities, and their endpoints
// file.
type cluster struct {
	file  string
	slots []*slot
}

func startCluster(dir string) (*cluster, error) {
	c := &cluster{
		file: filepath.Join(dir, "endpoints.yaml"),
		slots: []*slot{
			{locality: "us-east/a", priority: 0, localityWeight: 3, weight: 2, address: "127.0.0.1:0"},
			{locality: "us-east/a", priority: 0, localityWeight: 3, weight: 1, address: "127.0.0.1:0"},
			{locality: "us-east/b", priority: 0, localityWeight: 1, weight: 1, address: "127.0.0.1:0"},
			{locality: "eu-west/a", priority: 1, localityWeight: 1, weight: 3, address: "127.0.0.1:0"},
			{locality: "eu-west/a", priority: 1, localityWeight: 1, weight: 1, address: "127.0.0.1:0"},
		},
	}
	for _, s := range c.slots {
		if err := s.start(); err != nil {
			c.stop()
			return nil, err
		}
	}
	if err := c.write(); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (s *slot) start() error {
	if s.isRunning() {
		return nil
	}
	process, err := startBackend(s.address)
	if err != nil {
		return err
	}
	s.process, s.address = process, process.address
	return nil
}

func (s *slot) kill() {
	if s.isRunning() {
		s.process.kill()
		s.process = nil
	}
}

func (c *cluster) stop() {
	for _, s := range c.slots {
		s.kill()
	}
}

func (c *cluster) write() error {
	temporary := c.file + ".new"
	if err := os.WriteFile(temporary, []byte(c.yaml()), 0o600); err != nil {
		return fmt.Errorf("write the endpoints file: %w", err)
	}
	if err := os.Rename(temporary, c.file); err != nil {
		return fmt.Errorf("write the endpoints file: %w", err)
	}
	return nil
}

func (c *cluster) yaml() string {
	var b strings.Builder
	b.WriteString("cluster_name: " + clusterName + "\nendpoints:\n")
	last := ""
	for _, s := range c.slots {
		if s.locality != last {
			region, zone, _ := strings.Cut(s.locality, "/")
			fmt.Fprintf(&b, "- locality: {region: %s, zone: %s}\n  priority: %d\n  load_balancing_weight: %d\n  lb_endpoints:\n",
				region, zone, s.priority, s.localityWeight)
			last = s.locality
		}
		host, port, _ := strings.Cut(s.address, ":")
		fmt.Fprintf(&b, "  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n    load_balancing_weight: %d\n",
			host, port, s.weight)
	}
	return b.String()
}

func (c *cluster) activePriority() int {
	for _, s := range c.slots {
		if s.isServing() {
			return s.priority
		}
	}
	return -1
}

// expectedShares returns the share of the calls that each backend should get according to the
// weights. The share is zero for backends and localities that do not answer.
func (c *cluster) expectedShares() []float64 {
	inUse := c.activePriority()
	localities := map[string]float64{} // sum of the weights of the backends that answer, by locality
	weights := map[string]float64{}
	for _, s := range c.slots {
		if s.isServing() && s.priority == inUse {
			localities[s.locality] += float64(s.weight)
			weights[s.locality] = float64(s.localityWeight)
		}
	}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	shares := make([]float64, len(c.slots))
	for i, s := range c.slots {
		if s.isServing() && s.priority == inUse {
			shares[i] = weights[s.locality] / total * float64(s.weight) / localities[s.locality]
		}
	}
	return shares
}

// expectedAddresses returns the addresses of the backends that should get calls.
func (c *cluster) expectedAddresses() []string {
	var addresses []string
	for i, share := range c.expectedShares() {
		if share > 0 {
			addresses = append(addresses, c.slots[i].address)
		}
	}
	return addresses
}
