package file

import (
	"fmt"
	"net/url"

	"google.golang.org/grpc/resolver"
)

// form is shown to whoever gives a target of another form.
const form = "want file:///path/to/endpoints.yaml, optionally with ?authority=NAME"

// parseTarget returns the path of the target's file, and the authority that it asks
// for, "" if none.
func parseTarget(target resolver.Target) (path, name string, err error) {
	u := target.URL
	wrong := func(what string) (string, string, error) {
		return "", "", fmt.Errorf("file: target %q %s, %s", u.String(), what, form)
	}
	switch {
	case u.Opaque != "":
		return wrong("has a relative path (an absolute one has three slashes before it)")
	case u.Host != "" || u.User != nil:
		return wrong(fmt.Sprintf("names the host %q (three slashes come before a path)", u.Host))
	case u.Fragment != "":
		return wrong(fmt.Sprintf("has a fragment, %q (in a path, # is %%23)", u.Fragment))
	case u.Path == "" || u.Path == "/":
		return wrong("has no path")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return wrong(fmt.Sprintf("has a query that does not parse (%v)", err))
	}
	for key, values := range query {
		if key != "authority" {
			return wrong(fmt.Sprintf("has the unknown parameter %q (in a path, ? is %%3F)", key))
		}
		if len(values) != 1 || values[0] == "" {
			return wrong("has not one authority, but none or several")
		}
	}
	return u.Path, query.Get("authority"), nil
}
