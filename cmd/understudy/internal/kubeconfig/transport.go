package kubeconfig

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// transport adds a user's credentials to requests. It is safe for concurrent use.
type transport struct {
	base        *http.Transport
	credentials func(context.Context) (credentials, error)
	// discard discards the credentials. It is called when the server has rejected them.
	discard func()
}

type credentials struct {
	token       string
	certificate *tls.Certificate
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.credentials != nil {
		c, err := t.credentials(r.Context())
		if err != nil {
			return nil, err
		}
		if c.token != "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
	}
	response, err := t.base.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized && t.discard != nil {
		t.discard()
		t.base.CloseIdleConnections() // open connections would continue to use the old client certificate
	}
	return response, err
}

func (t *transport) authenticate(userEntry namedUser, c cluster, ca []byte) error {
	u := userEntry.User
	certificate, err := content(userEntry.file, "client-certificate", u.CertificateData, u.CertificateFile)
	if err != nil {
		return err
	}
	key, err := content(userEntry.file, "client-key", u.KeyData, u.KeyFile)
	if err != nil {
		return err
	}
	if certificate != nil || key != nil {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("%s: user %q: client-certificate and client-key are not a matching pair in PEM", userEntry.file, userEntry.Name)
		}
		t.base.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	switch {
	case u.Token != "":
		t.credentials = func(context.Context) (credentials, error) { return credentials{token: u.Token}, nil }
	case u.TokenFile != "":
		f := &tokenFile{path: resolvePath(userEntry.file, u.TokenFile)}
		t.credentials, t.discard = f.credentials, f.discard
	case u.Exec != nil:
		p, err := u.Exec.prepare(userEntry.file, c, ca)
		if err != nil {
			return fmt.Errorf("%s: user %q: %w", userEntry.file, userEntry.Name, err)
		}
		t.credentials, t.discard = p.credentials, p.discard
		t.base.TLSClientConfig.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := p.credentials(r.Context())
			if err != nil || c.certificate == nil {
				return new(tls.Certificate), err
			}
			return c.certificate, nil
		}
	case u.Username != "" || u.Provider != nil:
		return fmt.Errorf("%s: user %q has a password or an auth-provider; want a certificate, a token, tokenFile or exec", userEntry.file, userEntry.Name)
	}
	return nil
}

// tokenFile holds a token from a file. It reads the file again when the token is a minute old.
type tokenFile struct {
	path string

	mu     sync.Mutex
	token  string
	readAt time.Time
}

func (f *tokenFile) credentials(context.Context) (credentials, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readAt.IsZero() || time.Since(f.readAt) >= time.Minute {
		text, err := read(f.path)
		if err != nil {
			return credentials{}, fmt.Errorf("kubeconfig: tokenFile: %w", err)
		}
		f.token, f.readAt = strings.TrimSpace(string(text)), time.Now()
	}
	return credentials{token: f.token}, nil
}

func (f *tokenFile) discard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readAt = time.Time{}
}
