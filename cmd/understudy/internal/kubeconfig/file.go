package kubeconfig

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// maxFile limits the size in bytes of a file and of a plugin's output.
const maxFile = 1 << 20

// config holds the fields of a kubeconfig that this package uses. If several files set a field, the
// first value is used.
type config struct {
	Current  string         `yaml:"current-context"`
	Contexts []namedContext `yaml:"contexts"`
	Clusters []namedCluster `yaml:"clusters"`
	Users    []namedUser    `yaml:"users"`
}

type namedContext struct {
	Name    string `yaml:"name"`
	Context struct {
		Cluster string `yaml:"cluster"`
		User    string `yaml:"user"`
	} `yaml:"context"`
}

type namedCluster struct {
	Name    string  `yaml:"name"`
	Cluster cluster `yaml:"cluster"`
	file    string
}

type cluster struct {
	Server     string `yaml:"server"`
	CAFile     string `yaml:"certificate-authority"`
	CAData     string `yaml:"certificate-authority-data"`
	ServerName string `yaml:"tls-server-name"`
	Unverified bool   `yaml:"insecure-skip-tls-verify"`
	Proxy      string `yaml:"proxy-url"`
}

type namedUser struct {
	Name string `yaml:"name"`
	User user   `yaml:"user"`
	file string
}

type user struct {
	CertificateFile string  `yaml:"client-certificate"`
	CertificateData string  `yaml:"client-certificate-data"`
	KeyFile         string  `yaml:"client-key"`
	KeyData         string  `yaml:"client-key-data"`
	Token           string  `yaml:"token"`
	TokenFile       string  `yaml:"tokenFile"`
	Exec            *plugin `yaml:"exec"`

	Username string `yaml:"username"`
	Provider any    `yaml:"auth-provider"`
}

// load reads the files and skips missing files. It fails if all files are missing.
func load(paths []string) (*config, error) {
	var merged *config
	var missing error
	for _, path := range paths {
		data, err := read(path)
		if errors.Is(err, fs.ErrNotExist) {
			missing = cmp.Or(missing, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		var c config
		if err := yaml.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("%s: %s", path, printable.Line(err.Error(), 300))
		}
		for i := range c.Clusters {
			c.Clusters[i].file = path
		}
		for i := range c.Users {
			c.Users[i].file = path
		}
		if merged == nil {
			merged = new(config)
		}
		merged.Current = cmp.Or(merged.Current, c.Current)
		merged.Contexts = append(merged.Contexts, c.Contexts...)
		merged.Clusters = append(merged.Clusters, c.Clusters...)
		merged.Users = append(merged.Users, c.Users...)
	}
	if merged == nil {
		return nil, missing
	}
	return merged, nil
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s: want a regular file of at most %d bytes", path, maxFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// content returns the decoded data or, if data is empty, the content of the file. A relative path
// is relative to the directory of base. If both data and file are empty, the result is nil.
func content(base, field, data, file string) ([]byte, error) {
	if data != "" {
		decoded, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %s-data is not base64", base, field)
		}
		return decoded, nil
	}
	if file == "" {
		return nil, nil
	}
	text, err := read(resolvePath(base, file))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", base, field, err)
	}
	return bytes.TrimSpace(text), nil
}

func resolvePath(base, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(base), file)
}
