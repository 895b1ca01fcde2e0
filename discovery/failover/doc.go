// Package failover resolves a list of targets in priority order: calls go to the
// first one that can be reached, and to the next while it cannot.
//
//	conn, err := grpc.NewClient("failover:///us-east.example.com:443,eu-west.example.com:443", …)
//
// The targets of the list are called its parts. Each part has a resolver of its
// own and becomes one priority of understudy_priority (gRFC A56); within a part,
// calls go to its endpoints by their weights. Importing the package registers the
// scheme.
//
// # Parts
//
// Parts are separated by commas. A part is any target that [grpc.NewClient] takes,
// with these differences:
//
//   - it is percent-decoded once, so that a part with a comma or a question mark
//     is written with %2C and %3F;
//
//   - a part of a scheme of ours, such as eds, file or srv, brings all of its priorities,
//     in its order, before those of the next part;
//
//   - a failover target within the list stands for its parts;
//
//   - a part of ours, or one that a resolver of gRPC's is for, may have parameters:
//     authority, those of its source, and for DNS refresh and removeAfter
//     (docs/options.md);
//
//   - a part with "://" whose scheme nobody registered is an error;
//
//   - a part without a registered scheme is looked up by DNS, whatever
//     [resolver.SetDefaultScheme] says: host:443 means dns:///host:443. As in
//     NewClient, unix:/path and dns:host are read as targets with a scheme, because
//     those schemes are registered;
//
//   - xds is refused: it configures load balancing itself.
//
//     failover:///eds://xds.example.com:18000/checkout,srv:///checkout.example.com,backup.example.com:443%3Frefresh=30s
//
// In errors, logs, metrics and pages a part has the name that stands in the list, with xxxxx in
// place of a password, of a user without one, and of the values of parameters that are not this
// module's: they may be tokens.
//
// There are at most 64. The same part may be given twice. The failover
// target itself has no host or fragment, and its query has the parameters of every
// target, such as ?failoverTimeout=5s (docs/options.md). Whatever is wrong is reported by
// understudy.Validate, and by the first call on the channel, since gRPC builds resolvers
// when they are needed.
//
// Each part's resolver is built with service configs disabled: the channel's is
// given by understudy.Options.ServiceConfig.
//
// # Starting
//
// A part without an answer holds back those behind it, at most for the failover timeout
// (10 seconds unless it is given). Nothing is sent to the channel until the first part
// that has not failed has answered, so that a slow look-up does not send the first calls
// to the next part. From then on a part joins the list with its first answer or failure,
// and each later answer replaces the one before. gRFC A74 makes an xDS tree wait until all
// resources are there; here no part is waited for longer than the timeout.
//
// A part that answered once keeps its last addresses when its resolver fails or answers
// without any, also if the channel was idle in between, for up to an hour. A part that
// never answered is a priority that has failed, and its error is the one that calls to it
// fail with. Where no part has an address, calls fail with the errors of all.
//
// gRPC looks DNS names up again only when a connection fails. With refresh they are looked
// up by an interval as well, and an address is given up only after it was missing from two
// answers in a row, or as many as removeAfter says.
//
// A request for re-resolution goes to the part whose connection failed or broke; the
// policies know which it is. The channel asks as well, but does not say for which part. It
// is not heard where there are several: otherwise DNS would be looked up for as long as
// the endpoints of another part are down. The resolver of DNS names looks them up no more
// than once in 30 seconds, however often it is asked.
//
// # Authority and TLS
//
// The channel's authority is the first part's. Each address carries, as its ServerName,
// the authority that a channel to its part alone would have, so that each part is verified
// against its own certificate and is sent its own :authority. This name comes from the
// target alone: one that a part's resolver puts on an address is replaced. Where the
// credentials carry a name (tls.Config.ServerName), addresses carry none. Where the
// channel has [grpc.WithAuthority], gRPC ignores them. In both cases the one name given
// holds for all parts, as with ?authority=NAME or understudy.Options.Authority. (gRPC does not
// look for a name in a bundle of credentials. A bundle that has one gets the first part's
// authority for all parts.)
//
// # Proxies
//
// Where HTTPS_PROXY names a proxy, gRPC hands a name to the proxy as it is, unless
// it is told to look names up itself. A part looked up by DNS is treated the same:
// its name goes to the proxy, unless NO_PROXY lists it or [WithLocalDNSResolution]
// was given. Two things differ from a channel to one target, because gRPC reads the
// whole list as one host name:
//
//   - a NO_PROXY entry that matches the end of the last part, such as .example.com,
//     makes gRPC use no proxy for any part (a line in the log says so);
//   - with [grpc.WithNoProxy], which a resolver is not told about, give
//     WithLocalDNSResolution too; without it a part that the environment would send
//     through the proxy has one address, its name, looked up when it is dialled.
package failover
