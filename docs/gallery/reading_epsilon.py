"""How to read ε: what the best adversary could do with everything that was sent.

An adversary knows that one of two records, both known, was in the data, and sees every message of every party. ε and δ
bound how often the best guess is right; Gaussian noise is described exactly by one number, μ.
"""

from confide import privacy

rows = []
print("ε at δ=1e-5      μ   right, of two   right, of 100   found at 5 % false alarms")
for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0):
    mu = privacy.mu_for(epsilon, 1e-5)
    events = [privacy.Gaussian(sensitivity=mu, scale=1.0)]
    two, hundred = privacy.distinguish(events, prior=0.5), privacy.reconstruct(events, prior=0.01)
    found = 1 - privacy.trade_off(events, 0.05)
    rows.append((epsilon, mu, two, hundred, found))
    print(f"{epsilon:11g} {mu:6.3f}   {two:13.3f}   {hundred:13.3f}   {found:25.3f}")
