-- +goose Up
-- Two conditions of which each holds for many jobs, and both for few or none: what the
-- second one asks stands in the index of the first, so that no row is read in vain.
drop index jobs_customer;
drop index jobs_host;
drop index jobs_operator;
create index jobs_customer on jobs (customer, finished, runbook, operator, outcome);
create index jobs_host on jobs (host, finished, runbook, operator, outcome);
create index jobs_operator on jobs (operator, finished, runbook, outcome);

-- +goose Down
drop index jobs_customer;
drop index jobs_host;
drop index jobs_operator;
create index jobs_customer on jobs (customer, finished);
create index jobs_host on jobs (host, finished);
create index jobs_operator on jobs (operator, finished);
