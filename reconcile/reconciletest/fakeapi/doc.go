// Package fakeapi has a ready-made API outside of the cluster, for explorations of package reconciletest: accounts, buckets, DNS records,
// or whatever an operator creates in a service. Use it if you would otherwise write a fake of the service.
//
//	reconciletest.Scenario{
//		External: func() reconciletest.External { return &fakeapi.API[Account]{Kind: "account"} },
//		Start: func(p *reconciletest.Process) error {
//			accounts := p.External().(*fakeapi.API[Account]).Client(p)
//			return controller.SetupWithManager(p.Manager(), adapter{accounts})
//		},
//	}
//
// The operator calls it by a [Client], or by HTTP: see [API.RoundTripper]. All faults of effects and queries can happen at each call. These
// faults also exist:
//
//   - "too many requests at": status 429, with a time after which to retry. The call has no effect.
//   - "internal error at": status 500, or 503 by HTTP. The call has no effect.
//   - "stale answer to": a read shows what was there before the last write. A thing that was just created is not found, a thing that was
//     just deleted is found, and a thing that was just updated has its former fields. Only this one read shows the old state, and only
//     within the time [API.Lag] after the write.
//   - "outage from": this call, and all calls in the next minute of virtual time, get status 503 and have no effect.
//
// # What is found without a check of yours
//
// The API knows in which pass it is called, and so for which object. These are findings:
//
//   - "creates a duplicate": the operator is quiet, and two things exist that it has created for one object with the same name.
//   - "leaves something outside": the operator has created a thing that still exists, and every object for which it has
//     created, read or changed the thing is deleted.
//   - "changes what is not its own": it updates or deletes one of [API.Others].
//
// If one of them is intended, [reconciletest.Options.SkipFindings] leaves it out.
package fakeapi
