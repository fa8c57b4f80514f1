-- What the shop sells, one row an article; Debezium reads its changes through the publication.
create table prices (id int primary key, item text not null, price real not null);
create publication prices for table prices;
insert into prices values (1, 'laptop', 2000), (2, 'laptop', 2000), (3, 'laptop', 2000), (4, 'mouse', 25.5);

-- What comes back from Kafka.
create table totals (item text primary key, total double precision not null);
