package kubeconfig

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const (
	pluginTimeout = 30 * time.Second
	// renewBefore is how long before their expiry credentials are renewed. A plugin runs at most
	// once per minRunInterval, because its credentials always seem to have expired if its clock is
	// wrong.
	renewBefore    = 10 * time.Second
	minRunInterval = time.Second
)

type plugin struct {
	APIVersion string   `yaml:"apiVersion"`
	Command    string   `yaml:"command"`
	Args       []string `yaml:"args"`
	Env        []struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	} `yaml:"env"`
	Interactive string `yaml:"interactiveMode"`
	ClusterInfo bool   `yaml:"provideClusterInfo"`

	info string // content of KUBERNETES_EXEC_INFO, in JSON

	mu      sync.Mutex
	cached  *credentials
	expires time.Time // zero if the credentials never expire
	lastRun time.Time
}

// prepare checks the fields of p, prepares p to run, and returns p. path is the path of the
// kubeconfig that contains p.
func (p *plugin) prepare(path string, c cluster, ca []byte) (*plugin, error) {
	switch {
	case p.APIVersion != "client.authentication.k8s.io/v1" && p.APIVersion != "client.authentication.k8s.io/v1beta1":
		return nil, fmt.Errorf("exec has apiVersion %s, want client.authentication.k8s.io/v1 or v1beta1", printable.Quote(p.APIVersion))
	case p.Command == "":
		return nil, errors.New("exec has no command")
	case p.Interactive == "Always":
		return nil, errors.New("exec has interactiveMode Always, but understudy never prompts; want IfAvailable or Never")
	}
	if strings.ContainsRune(p.Command, os.PathSeparator) {
		p.Command = resolvePath(path, p.Command)
	}
	spec := map[string]any{"interactive": false}
	if p.ClusterInfo {
		spec["cluster"] = map[string]any{"server": c.Server, "tls-server-name": c.ServerName, "insecure-skip-tls-verify": c.Unverified, "certificate-authority-data": ca, "proxy-url": c.Proxy}
	}
	info, err := json.Marshal(map[string]any{"apiVersion": p.APIVersion, "kind": "ExecCredential", "spec": spec})
	p.info = string(info)
	return p, err
}

// credentials returns the cached credentials if they are still valid. Otherwise, it runs the
// plugin.
func (p *plugin) credentials(ctx context.Context) (credentials, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cached == nil || !p.expires.IsZero() && time.Until(p.expires) < renewBefore && time.Since(p.lastRun) >= minRunInterval {
		fresh, expires, err := p.run(ctx)
		if err != nil {
			return credentials{}, fmt.Errorf("kubeconfig: %s: %w", p.Command, err)
		}
		p.cached, p.expires, p.lastRun = fresh, expires, time.Now()
	}
	return *p.cached, nil
}

func (p *plugin) discard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cached = nil
}

func (p *plugin) run(ctx context.Context) (*credentials, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, pluginTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, p.Command, p.Args...)
	command.WaitDelay = time.Second
	command.Env = append(os.Environ(), "KUBERNETES_EXEC_INFO="+p.info)
	for _, e := range p.Env {
		command.Env = append(command.Env, e.Name+"="+e.Value)
	}
	output, errorOutput := &limitedBuffer{limit: maxFile}, &limitedBuffer{limit: 4 << 10}
	command.Stdout, command.Stderr = output, errorOutput
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %v", pluginTimeout)
		}
		if text := strings.TrimSpace(errorOutput.buffer.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, printable.Line(text[strings.LastIndexByte(text, '\n')+1:], 200))
		}
		return nil, time.Time{}, err
	}
	if output.truncated {
		return nil, time.Time{}, fmt.Errorf("it prints more than %d bytes", maxFile)
	}
	return p.parse(output.buffer.Bytes())
}

// parse parses the plugin's output. Errors must not contain any part of the output.
func (p *plugin) parse(text []byte) (*credentials, time.Time, error) {
	var printed struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Status     struct {
			Token       string    `json:"token"`
			Certificate string    `json:"clientCertificateData"`
			Key         string    `json:"clientKeyData"`
			Expires     time.Time `json:"expirationTimestamp"`
		} `json:"status"`
	}
	err := json.Unmarshal(text, &printed)
	if err != nil || printed.Kind != "ExecCredential" || printed.APIVersion != p.APIVersion {
		return nil, time.Time{}, fmt.Errorf("its output is not an ExecCredential of %s in JSON", p.APIVersion)
	}
	s := printed.Status
	c := &credentials{token: s.Token}
	if s.Certificate != "" || s.Key != "" {
		pair, err := tls.X509KeyPair([]byte(s.Certificate), []byte(s.Key))
		if err != nil {
			return nil, time.Time{}, errors.New("its clientCertificateData and clientKeyData are not a matching pair in PEM")
		}
		c.certificate = &pair
	}
	if c.token == "" && c.certificate == nil {
		return nil, time.Time{}, errors.New("it prints neither a token nor a certificate")
	}
	return c, s.Expires, nil
}

// limitedBuffer is a writer that keeps only the first limit bytes.
type limitedBuffer struct {
	buffer    bytes.Buffer
	limit     int
	truncated bool
}

func (b *limitedBuffer) Write(text []byte) (int, error) {
	if left := b.limit - b.buffer.Len(); len(text) > left {
		b.truncated = true
		b.buffer.Write(text[:left])
	} else {
		b.buffer.Write(text)
	}
	return len(text), nil
}
