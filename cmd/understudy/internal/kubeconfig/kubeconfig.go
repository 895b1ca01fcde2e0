// Package kubeconfig reads kubectl's configuration, so that Kubernetes targets work outside a
// cluster.
package kubeconfig

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery/kubernetes"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var logger = grpclog.Component("understudy")

// Options select the file and the context.
type Options struct {
	// Path is the path of the file. If it is empty, the files in KUBECONFIG are read, or else
	// ~/.kube/config.
	Path string
	// Context is the name of the context. If it is empty, the current context is used.
	Context string
}

// Flags adds command line flags for the options.
func (o *Options) Flags(flags interface {
	StringVar(value *string, name, defaultValue, usage string)
}) {
	flags.StringVar(&o.Path, "kubeconfig", "", "kubeconfig `file` for kubernetes: targets (default: the pod's service account, else KUBECONFIG, else ~/.kube/config)")
	flags.StringVar(&o.Context, "context", "", "`name` of the context in the kubeconfig (default: the current one)")
}

// kubernetesPattern matches Kubernetes targets, even inside other targets.
var kubernetesPattern = regexp.MustCompile(`(^|[^a-z0-9+.-])(kubernetes|k8s):`)

// Sources returns the source options that the targets need. The result is nil if no target is a
// Kubernetes target. It is also nil if the program runs in a cluster and o is empty.
func (o Options) Sources(targets ...string) ([]any, error) {
	if !slices.ContainsFunc(targets, kubernetesPattern.MatchString) {
		return nil, nil
	}
	if o == (Options{}) && os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return nil, nil
	}
	host, t, err := o.transport()
	if err != nil {
		return nil, err
	}
	return []any{kubernetes.WithTransport(host, t)}, nil
}

func (o Options) paths() []string {
	if o.Path != "" {
		return []string{o.Path}
	}
	if list := slices.DeleteFunc(filepath.SplitList(os.Getenv("KUBECONFIG")), func(path string) bool { return path == "" }); len(list) > 0 {
		return list
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(home, ".kube", "config")}
}

func (o Options) transport() (string, *transport, error) {
	paths := o.paths()
	c, err := load(paths)
	if errors.Is(err, fs.ErrNotExist) && o.Path == "" {
		return "", nil, fmt.Errorf("not in a cluster, and there is no kubeconfig (%w); want --kubeconfig FILE", err)
	}
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if c == nil {
		return "", nil, errors.New("kubeconfig: not in a cluster, and no home directory; want --kubeconfig FILE")
	}
	context, err := findByName(c.Contexts, func(x namedContext) string { return x.Name }, "context", cmp.Or(o.Context, c.Current), paths)
	if err != nil {
		return "", nil, err
	}
	clusterEntry, err := findByName(c.Clusters, func(x namedCluster) string { return x.Name }, "cluster", context.Context.Cluster, paths)
	if err != nil {
		return "", nil, err
	}
	var userEntry namedUser
	if context.Context.User != "" {
		if userEntry, err = findByName(c.Users, func(x namedUser) string { return x.Name }, "user", context.Context.User, paths); err != nil {
			return "", nil, err
		}
	}
	t, err := newTransport(clusterEntry, userEntry)
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return clusterEntry.Cluster.Server, t, nil
}

func findByName[T any](list []T, nameOf func(T) string, kind, name string, paths []string) (zero T, err error) {
	if name == "" {
		return zero, fmt.Errorf("kubeconfig: %s: no %s is named; want current-context or --context", paths[0], kind)
	}
	i := slices.IndexFunc(list, func(x T) bool { return nameOf(x) == name })
	if i < 0 {
		return zero, fmt.Errorf("kubeconfig: %s: there is no %s %s", paths[0], kind, printable.Quote(name))
	}
	return list[i], nil
}

func newTransport(clusterEntry namedCluster, userEntry namedUser) (*transport, error) {
	c := clusterEntry.Cluster
	server, err := url.Parse(c.Server)
	switch {
	case err != nil || server.Host == "" || server.User != nil || server.Scheme != "https" && server.Scheme != "http":
		return nil, fmt.Errorf("%s: server is %s, want one such as https://10.0.0.1:6443", clusterEntry.file, printable.Quote(c.Server))
	case server.Scheme == "http" && !isLoopback(server.Hostname()):
		return nil, fmt.Errorf("%s: server is %s, want https beyond loopback", clusterEntry.file, printable.Quote(c.Server))
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.Unverified}
	if c.Unverified {
		logger.Warningf("kubeconfig: %s: the certificate of %s is not verified (insecure-skip-tls-verify)", clusterEntry.file, printable.Text(server.Host))
	}
	ca, err := content(clusterEntry.file, "certificate-authority", c.CAData, c.CAFile)
	if err != nil {
		return nil, err
	}
	if ca != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s: certificate-authority holds no certificate, want PEM", clusterEntry.file)
		}
	}
	t := &transport{base: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     config,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}}
	if c.Proxy != "" {
		proxy, err := url.Parse(c.Proxy)
		if err != nil || proxy.Host == "" {
			return nil, fmt.Errorf("%s: proxy-url does not parse", clusterEntry.file)
		}
		t.base.Proxy = http.ProxyURL(proxy)
	}
	return t, t.authenticate(userEntry, c, ca)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
