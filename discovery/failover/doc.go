// Package failover resolves a list of targets in priority order. Calls go to the first target that
// can be reached.
//
//	conn, err := grpc.NewClient("failover:///us-east.example.com:443,eu-west.example.com:443", …)
//
// Each target in the list is a discovery mechanism with its own resolver and becomes one priority
// of understudy_priority (gRFC A56). Within a priority, calls are distributed over its endpoints by
// weight. Importing the package registers the scheme.
//
// # List
//
// Targets are separated by commas and have the same form as for [grpc.NewClient], with these
// differences:
//
//   - a target is percent-decoded once, so write commas and question marks in it as %2C and %3F;
//
//   - a target with a scheme of this module, such as eds, file or srv, contributes all its
//     priorities, in their order, before those of the next target;
//
//   - a failover target in the list is replaced by its own list;
//
//   - a target of this module, or of one of gRPC's resolvers, may have parameters: authority, the
//     parameters of its source, and, for DNS, refresh and removeAfter (docs/options.md);
//
//   - a target with "://" and an unregistered scheme is an error;
//
//   - a target without a registered scheme is looked up by DNS, regardless of
//     [resolver.SetDefaultScheme]: host:443 is dns:///host:443. As in NewClient, unix:/path and
//     dns:host have a scheme;
//
//   - xds isn't accepted, because it configures load balancing itself.
//
// For example:
//
//	failover:///eds://xds.example.com:18000/checkout,srv:///checkout.example.com,backup.example.com:443%3Frefresh=30s
//
// In errors, logs and metrics, and on the debug page, a mechanism is called by its text in the
// list. Passwords are replaced by xxxxx, and so are users without a password and the values of
// unknown parameters, since they may be tokens.
//
// A list has at most 64 targets, and the same target may occur twice. The failover target itself
// has no host and no fragment. Its query may have the parameters that every target accepts, e.g.
// ?failoverTimeout=5s (docs/options.md). Use understudy.Validate to find mistakes in a target.
// Otherwise, you won't see them until the first call on the channel, because gRPC builds resolvers
// on demand.
//
// Service configs are disabled for the resolvers in the list. To set the channel's service config,
// use understudy.Options.ServiceConfig.
//
// # Starting
//
// If a mechanism doesn't answer, it delays the mechanisms after it, but only up to the failover
// timeout (10 seconds by default). The channel gets its first update once the first mechanism that
// hasn't failed has answered, so a slow lookup doesn't send the first calls to the next target.
// After that, each mechanism joins with its first answer or failure, and every later answer
// replaces the one before it. In gRFC A74, an xDS tree waits for all resources without a limit.
// Here, the timeout limits the wait.
//
// If a mechanism's resolver fails or answers without addresses, the mechanism keeps its last
// addresses. It also keeps them for up to an hour while the channel is idle. A mechanism that has
// never answered is a failed priority, and its calls fail with its error. If none of the mechanisms
// has an address, calls fail with the errors of all of them.
//
// gRPC only looks up DNS names again after a failed connection. With the parameter refresh, they
// are also looked up at an interval, or earlier after a failed lookup, with gRPC's backoff. An
// address is removed if two answers in a row don't have it. Use removeAfter to change that.
//
// A re-resolution request goes to the mechanism whose connection failed. The channel itself may
// also request a re-resolution, but can't say for which mechanism. If there are several, we ignore
// that. Otherwise, we'd look up DNS names the whole time that endpoints of some other mechanism are
// down. gRPC's DNS resolver looks up a name at most once in 30 seconds.
//
// # Authority and TLS
//
// The channel's authority is that of the first mechanism. The ServerName of each address is the
// authority that a channel to just its mechanism would have, so each mechanism is verified against
// its own certificate and gets its own :authority. The ServerName only ever comes from the target:
// if a mechanism's resolver sets one, it's replaced. If the credentials have a name
// (tls.Config.ServerName), addresses have no ServerName. With [grpc.WithAuthority], gRPC ignores
// the names of addresses. In both cases there's just one name for all mechanisms, as with
// ?authority=NAME or understudy.Options.Authority. (gRPC doesn't look for a name in a bundle of
// credentials. With such a bundle, all mechanisms have the first mechanism's authority.)
//
// # Proxies
//
// If HTTPS_PROXY names a proxy, gRPC sends names to it, unless gRPC is configured to look names up
// itself. Mechanisms that use DNS work the same way: their name goes to the proxy, unless NO_PROXY
// lists it or [WithLocalDNSResolution] is set. There are two differences from a channel to a single
// target, because gRPC reads the whole list as one host name:
//
//   - a NO_PROXY entry that matches the end of the last target, such as .example.com, makes gRPC
//     use no proxy for any mechanism (the log notes it);
//   - with [grpc.WithNoProxy], which resolvers can't see, also set WithLocalDNSResolution.
//     Otherwise, a mechanism that the environment would send through the proxy has its name as its
//     only address, and the name is looked up when it's dialed.
package failover
